"""Settings that every test shares."""

from hypothesis import settings

# Same examples in every run, and no deadline: the machine that runs the tests may be busy with something else.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("suite")
