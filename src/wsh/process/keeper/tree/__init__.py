"""The processes of a child: which belong to it, what they wait for, and killing all of them."""
