"""How does the fleet look in a terminal, right now?

fleet         one look at the GPUs: the statements of a short window, joined by device
sources       where looks come from: live_devices (nvml, amd, replay) or lake_view
orders        sorting and filtering
columns       which columns fit a width, and what is in their cells
drawing       the same look as plain text, and small charts
app           the Textual application; dialogs: history, processes, help
"""
