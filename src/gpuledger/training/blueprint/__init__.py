"""What does one training step of any Hugging Face model take, counted without a GPU?

The model is built by transformers or diffusers on torch's meta device: tensors have shapes and no memory. One step then
runs as it would on a GPU, operator by operator, and is watched: which tensors are alive, which operators move how many
bytes.

modules   a configuration of transformers to a module, and one micro-batch of inputs for it
denoisers the same for a configuration of diffusers
kernels   stand-ins for what a GPU does differently: fused attention, dropout, autocast
watch     bytes alive, bytes moved and FLOP of everything that runs
step      a step of a configuration, remembered
forward   a pass without gradients, remembered
"""
