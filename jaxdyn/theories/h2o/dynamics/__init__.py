"""What greedy choices reach, and the optimum by enumeration."""
