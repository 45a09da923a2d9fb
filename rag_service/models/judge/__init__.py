"""Whether a passage entails what an answer says of it: a second opinion on sentences that code cannot decide."""
