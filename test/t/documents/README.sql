CREATE EXTENSION pg_lsm;
CREATE TABLE orders (id bigint PRIMARY KEY, customer int);
CREATE INDEX orders_customer_idx ON orders (customer);
