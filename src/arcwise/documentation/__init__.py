"""The pages of docs/losses, written from the docstrings of the losses themselves: `python -m arcwise.documentation`.

It belongs to the repository and is left out of the wheel.
"""
