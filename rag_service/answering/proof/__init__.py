"""Whether the document says what the answer says: from citation marks to claims, and their evidence in the text."""
