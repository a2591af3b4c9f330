"""What is there to paste? HorizontalPodAutoscaler, ScaledObject and NodePool with the tuned values."""
