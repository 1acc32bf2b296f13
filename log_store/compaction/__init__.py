"""Compaction: what may be cleaned, the map of keys, the cleaning pass, and the swap of the cleaned segments."""
