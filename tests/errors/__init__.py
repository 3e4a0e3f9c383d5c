"""What a wrong call says: tables of calls with the class and the whole message of the error, one for each topic."""
