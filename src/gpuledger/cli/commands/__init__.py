"""Which commands are there? One module each; the module's name is the command's. They import the rooms when run."""
