"""Search: questions that are answered by searching a corpus, in Search-R1's manner."""
