"""What did the hardware really do?

build (`efficiency_statement(lake, ...)`) is the way in, statement has the figures. means adds up the ledger's accounts;
capacity, groups, hours, trend, health and counted make the analyses from them, findings puts them into words.
calibration_files keeps what was measured on these very GPUs.
"""
