"""What should each namespace move to, by what its GPUs really did?"""
