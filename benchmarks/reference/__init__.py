"""The paper's equations in plain NumPy: oracle of the tests and reference of the speed figures.

Nothing here is imported from `sfihilo`, and nothing there from here.
"""
