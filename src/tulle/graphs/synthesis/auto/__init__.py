"""The model auto, which divides its budget among what it measures."""
