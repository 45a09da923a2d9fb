import time, socket, pytest
async def test_a(database):
    async with database.transaction(None) as c:
        assert (await (await c.execute("select count(*) from corpora")).fetchone())[0]==0
    await database.check()
async def test_b(database): pass
async def test_c(database): pass
def test_net():
    with pytest.raises(RuntimeError): socket.create_connection(("1.1.1.1",80),timeout=1)
    with pytest.raises(RuntimeError): socket.create_connection(("example.com",80),timeout=1)
