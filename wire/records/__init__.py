"""Record batches of format v2: header view and patching, records, building, compression."""
