"""Generation with a model in this process that keeps the keys and values of earlier turns.

- `decoder.py`: `CachedDecoder`, which answers batches of prompts
- `cached_model.py`: forward passes over some rows of the cache
- `kv_cache.py`: the tensors, a `Cache` of transformers with one row per sequence
- `rows.py`: which tokens a row holds, the longest common prefix, and the row to overwrite next
- `sampling.py`: one token per row, each row with its own settings and random numbers
- `seeds.py`: the seeds of answers, which do not depend on the batch
- `support.py`: the models that this works with
"""
