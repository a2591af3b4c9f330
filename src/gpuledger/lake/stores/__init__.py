"""Where does a lake lie: in a folder, or in a bucket of an object store?

store       what both can do, and which of them an address names
folder      a folder on a local or shared file system: locks, renames, syncs
bucket      one bucket: whole objects read, written, swapped if unchanged, listed
remote      a lake in a bucket: a lease for writers, copies on this machine for readers
path        a place in a bucket where code expects a path
lease       who may write now, without a clock that hosts would have to share
clients     credentials and endpoints; faults: what a server's refusal means and what to do next
cache       the copies on this machine, bounded
"""
