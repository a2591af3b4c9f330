"""GPU cost and waste as rows of FOCUS, the FinOps Open Cost and Usage Specification.

columns   the columns of the specification, from a data file with its source
days      the charges of a window day by day, adding up to its bill exactly
rows      one charge of one day as a row
files     rows as CSV and Parquet
"""
