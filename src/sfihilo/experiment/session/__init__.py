"""A session with a person: decide, write, propose the next trial, in a lab's file."""
