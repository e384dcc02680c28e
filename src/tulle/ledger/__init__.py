"""The account book of privacy, and the one way from data to a release."""
