"""What is wrong in the fleet right now, who is notified, and did the message arrive?

limits           the section [alerts] of gpuledger.toml
rule, rules/     what is measured: one rule per file
seen, devices    what rules read from a lake, each thing once per look
machine          from measurements to alerts: pending, firing, recovered
deciding, event  what a look changes, and what is in a message
ladder           who is notified, and when: the owner first
silence          what is kept quiet, and until when
journal, outbox  all of it on disk, and the messages still to be delivered
receivers/       how a message is delivered: one kind per file
courier          delivery with retries
watcher          the loop
standing         how alerts stand, for people and programs
"""
