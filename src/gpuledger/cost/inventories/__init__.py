"""What is paid for, as the files that exist already show it: bills, node lists, tables of your own.

A kind of file is one module here (or an entry point `gpuledger.inventories` of another package), which reads its rows.
telemetry/formats/bills.py recognizes it by what is in the file, never by its name. summary: what one shows by itself.

own          one row per GPU or host: device, from, to, instance, region, purchase_option, usd_per_h
aws          AWS Cost and Usage Report, legacy and 2.0
azure        Azure cost and usage details
gcp          Google Cloud detailed billing export
focus        FOCUS 1.x, of any provider
opencost     OpenCost and Kubecost allocations
kubernetes   kubectl get nodes -o json
slurm        scontrol show node, sinfo -N
"""
