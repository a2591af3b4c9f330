"""gpuledger keeps the books of a GPU fleet."""

__version__ = "0.1.0"
