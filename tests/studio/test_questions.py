"""Questions as pages write them."""
