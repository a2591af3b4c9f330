"""Where and when should it run? One question a module; each opens with its own."""
