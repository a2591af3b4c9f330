"""Which GPUs do worse than their own past, or than peers on the same work?"""
