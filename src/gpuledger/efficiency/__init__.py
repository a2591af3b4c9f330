"""What did the hardware really do?"""
