"""Search: answer questions by searching a corpus, as in Search-R1."""
