"""Yes/no matrices released bit by bit, with noise that is XORed onto them."""
