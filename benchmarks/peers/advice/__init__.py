"""How good a setting the peers recommend after few trials, on the people of the panel "advice"."""
