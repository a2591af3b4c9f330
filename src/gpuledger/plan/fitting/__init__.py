"""Does a model fit, and what is the least change that makes it fit?"""
