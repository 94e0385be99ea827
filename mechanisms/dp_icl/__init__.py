"""Reference mechanisms for differentially private in-context learning."""
