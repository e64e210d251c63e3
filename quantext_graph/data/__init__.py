"""What comes in: tables in any form, records, a look at the columns, the auxiliary set."""
