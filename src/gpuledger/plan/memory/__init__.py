"""How much memory does a model take, part by part?"""
