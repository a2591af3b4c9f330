"""What stands in front of code that is to run as where only the core dependencies are installed?"""

WITHOUT_PANDAS = """
import sys


class _NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


sys.meta_path.insert(0, _NotInstalled())
"""
