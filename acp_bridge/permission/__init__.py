"""Who may do what: policy and the ask."""
