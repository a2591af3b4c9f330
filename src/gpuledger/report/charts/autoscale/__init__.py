"""The charts of an autoscaling plan."""
