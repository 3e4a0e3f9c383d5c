"""Private implementation of haliax; the public modules beside it re-export from here."""
