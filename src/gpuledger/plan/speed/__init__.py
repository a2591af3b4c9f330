"""How fast can a model run on a GPU, as a range?"""
