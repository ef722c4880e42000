"""Model families: the contract a plugin fulfils, and how installed families are found."""
