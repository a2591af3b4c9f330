"""In which region should a job run: what does it cost there, how much carbon, how many zones?

asked      the question, checked
costing    one candidate: instances, data, dollars, energy and carbon
front      which candidates no other one beats in every respect
build      the plan: candidates, the front, what was refused
statement  what the plan is made of

Regions do not get one score. A region is on the front unless another one is at least as good in dollars, carbon and
zones, and better in one of them.
"""
