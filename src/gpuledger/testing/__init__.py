"""What stands in for what is not there?

openai_server   an OpenAI-compatible server over real sockets, as a script says; openai_script, openai_bodies
holding         real processes that hold a fake GPU
"""
