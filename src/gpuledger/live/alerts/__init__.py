"""What is wrong in the fleet right now, who is told, and did the message arrive?

limits       the section [alerts] of gpuledger.toml
rule, rules/ what is measured: one rule per file
seen         what rules read off a lake, each thing read once
machine      from measurements to alerts: waiting, firing, recovered
event        what a message says
ladder       who is told, and when: the owner first
silence      what is kept quiet, until when
journal      all of it on disk, in one transaction per look
outbox       which message is still to be delivered to whom
receivers/   how a message is delivered: one kind per file
courier      delivery with retries
watcher      the loop
"""
