"""Where and when should it run? One question a module; each opens with its own.

Will it fit?      fit.py answers; fit_changes.py and fit_search.py find the least change that makes it fit
  memory          memory.py adds up the parts: memory_weights.py, memory_activations.py, memory_cache.py;
                  memory_setup.py is how it is run, memory_facts.py what the parts stand on
How fast?         throughput.py answers; throughput_decode.py (one step of serving), throughput_products.py (training,
                  prompts), links.py (between GPUs and nodes), throughput_facts.py (measured losses and errors)
Where else?       migrate.py answers, with migrate_*.py; options.py and offers.py are what can be had, placing*.py if
                  and how fast it runs there, scoring.py, judging.py, guidelines.py and refusals.py weigh it
  configuration   migrate_config.py and migrate_schema.py, config_*.py, json_comments.py, reference/
From the ledger?  from_ledger.py answers, with from_ledger_*.py; demand.py is what was measured (from
                  busy_hours.py), packing.py how it packs
data/             precisions, optimizers, kept tensors, overheads, links, efficiency factors, efforts: sources with each
"""
