"""What stands in for a server or a GPU in tests?

openai_server   an OpenAI-compatible server over real sockets; openai_script: how it behaves and what it sends
holding         real processes that hold a fake GPU
"""
