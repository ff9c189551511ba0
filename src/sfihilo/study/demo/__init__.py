"""The demonstration: both goals and random trials learn the same simulated people.

It runs the same interaction as the study, with the default settings of each goal. `courses`
computes, `why` explains one person, `summary` takes means over people, `report` prints and draws.
"""
