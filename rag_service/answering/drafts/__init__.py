"""What is made of an answer before it is decided about: its events, its checked text, what a judge says of it."""
