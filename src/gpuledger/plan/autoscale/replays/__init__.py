"""What happens to the requests under a policy? Replays request by request or as a flow, and the closed forms."""
