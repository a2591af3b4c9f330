"""How does gpuledger run where there is no GPU?

clock       virtual time for tests, quick time for demonstrations
script      what a device will say: the interface, and playing it in a loop
tape        a script read from a recording; layouts/*.toml say which columns a recording has
scenario    a script written by hand: pieces of constant, ramping or bouncing readings
fake_nvml   an object that answers the calls of pynvml from scripts
fake_amd    an object that answers the calls of amdsmi from scripts
faults      lost GPU, unsupported field, slow call, driver error, clock step
replay      the doors: a recording or a scenario as a device to sample
openai_server   an OpenAI-compatible server over real sockets, as a script says; openai_script, openai_bodies
"""
