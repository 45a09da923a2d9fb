"""Typical words of Spanish, folded."""

from __future__ import annotations

SPANISH = frozenset(
    """
    abajo abeja abierto abogado abono abrir abuela abuelo acceso accidente accion acciones aceite aceptar acera acero
    actitud actividad actual actualizar actuar acuerdo adelanto administracion aduana adulto aereo afiliacion afuera
    agosto agua aguja ahora ahorro aire ajo ajuste alcalde alcanzar alegria alemania algodon alimento alma almacen
    almuerzo alquiler alrededor alta altas alto altura alumbrar alumno amable amarillo ambito amigo amigos amor
    ampliar amplio anadir analisis ancho anillo animal anterior antiguedad antiguo anual anular anuncio apagar aparato
    aparcamiento aparcar aparecer apartado apellido aplazar aplicacion aplicar apoyar apoyo aprender aprendices
    aprendiz aprendizaje aprobar apuesta apuntar arbol archivo arena arma armario arreglar arriba arroz arte articulo
    ascensor asegurar asiento asignar asistencia aspecto asunto atencion atender atraer atras aumento ausencia autobus
    autonomo autor autoridad avance avanzar avion avisar aviso ayer ayuda ayudar ayudas ayuntamiento azul bailar
    bailarina baja bajas bajo banco bandera bano bar barato barco barrio barro base basura batalla beber bebida bello
    beneficio bici bicicleta bicicletas bienes billete blanco boca boda bolsa bolsillo bomba bombero bonito bonos
    borde borrar bosque botella boton brazo breve brillante brindar buena bueno buscar buzon caballo cabello cabeza
    cables cabo cadena cadera caducan caducidad caer cafe caida caja calcular calculo calefaccion calidad calido
    caliente calle calor cama camara cambiar cambio camion camisa campana campesino campo canal cancion candidato
    candidatos cansado cantar cantidad capa capaz capital capitulo cara caracter carbon carcel cargar cargo carne
    carpeta carretera carta cartera casa casado castillo causa causar celebrar celula cena central centro cerca
    cerebro ceremonia cero cerrado cerrar certificado cesta charla cheque chica chico cielo cien ciencia cientifico
    cierre cierto cifra cinco cine circulo cita ciudad ciudadano ciudadanos civil clase clases clasico clave cliente
    clientes clima cobrar cobre coche cocina codigo cola coleccion colegio colegios colgar colocar color columna
    comedor comenzar comer comercial comercio cometer comida comision comite compania comparar compartir completo
    componer comportamiento compra comprar comprobante comun comunicacion comunidad concepto conciencia concierto
    conclusion condicion conducir conducta conductor conejo conexion confianza confirmar conflicto confundir congreso
    conjunto conocer conocido conocimiento consecuencia conseguir consejo conservar considerar constituir construccion
    construir consulta consultar consumir consumo contable contacto contar contener contenido contestar contexto
    continuar contra contrario contrasena contrasenas contratacion contrato contribuir control convencer convenio
    conversacion convertir copia copias corazon corona correcto correo correr corriente cortar corte corto coste
    costes creacion crear crecimiento creencia creer crisis cristal critica cruz cruzar cuadro cualidad cuchara
    cuchillo cuello cuenta cuerda cuero cuerpo cuesta cuestion cueva cuidado cuidar culpa cultivo cultura cumbre
    cumplimiento cumplir cuna cuota cupones curar curso daga dana dano datos debajo debate deber debil decada decidido
    decidir decir decision dedicar dedo deducir defecto defender defensa definir dejar delante delegado delgado
    demanda demasiado democracia demostrar dentro denuncia departamento depender deporte deposito deprisa derecho
    derrota desaparecer desarrollar desarrollo desayuno descanso descargar describir descubrir descuento desear
    desempleo deseo desierto desorden despacho despedido despido destacar destino destruir detalle detener deuda
    devolucion devolver dia diario dibujo diciembre dictar diente diferencia diferente dificil digno dinero dios
    direccion dirigir discapacidad disco discurso disenar diseno disfrutar disminuir disponible distancia distinto
    diverso dividendos dividir doble doctor documentacion documento dolar dolor domicilio domingo dominio dormir
    dormitorio droga duda dudar dueno duracion duro echar economia economico edad edificio efecto eficaz ejecutar
    ejemplo ejercicio ejercito elaborar electrico elegir elemento elevado eliminar embarazo emergencia emocion
    emperador empezar empleado empleados emplear empleo empresa encargado encender enchufe encima encontrado encontrar
    enemigo energia enero enfermedad enfermo enlace enorme ensenanza ensenar entender enterar entero entorno entrada
    entre entrega entregar enviar envio epoca equilibrio equipo equivocado error escalera escapar escaso escena
    escenario esclavo escribir escrito escritor escuchar escuela esencial esfuerzo espacio espalda espanol especial
    especie espera esperanza esperar espiritu esposa esquina establecer estacion estadio estandar estilo estrategia
    estrecho estrella estropeado estructura estudiante estudiantes estudiar estudio etapa etiqueta europeo evento
    evidencia evitar examen examinar excepcion exceso exigir existencia existir exito experiencia experto explicacion
    explicar exponer expresar expresion extender extension exterior externo extranjero extrano extraviado extremo
    fabrica facil factor factura facturas falta familia famoso farmacia febrero fecha fechas felicidad feliz fenomeno
    feo ferias ferrocarril festivos fichar fichas fiebre fiel fiesta figura fijo fila filosofia fin final financiero
    firma firmar firme fisico flecha flor fluir fondo forma formacion formar formulario fracaso franja frase
    frecuencia frente fresco frio frontera fruta fuego fuente fuerte fuerza fumar funcion funcionamiento funcionar
    funcionario futuro gafas galleta gallina ganado ganancia ganar garantia garganta gas gastar gasto gastos gato
    general genero gente gerente gestion gestor gigante girar global gloria gobierno golpe gordo gota grabar grado
    grafico gramatica grande granja grasa gratis grave gritar grua grueso grupo grupos guante guardar guarderia guerra
    guia gustar gusto habilidad habitacion habitante habitantes habito hablar hecho hechos helado hembra herida
    hermana hermano hermoso herramienta hielo hierba hierro hijo hijos hilo hipoteca historia hogar hoja holgado
    hombre honor honra hora horario horarios hospitalizacion hoy hueco huelga huelgas huella hueso huesped huevo huir
    humano humedad humo huracan idea identidad idioma iglesia igual igualdad ilegal imagen imagenes imaginar imperio
    imponer importancia importante imposible impresora impuesto impuestos impulso incendio incidencia incluido incluir
    incluso incremento indemnizacion indicar indice individuo industria infancia influencia informacion informe
    ingeniero ingreso ingresos inicial iniciar inicio inmediato inquilino inscripcion insecto instalacion institucion
    instrumento intentar intento intercambio interes interior interno interpretar introducir inundacion inventario
    inversion invertir investigacion invierno invitar isla izquierda jabon jamas jardin jefa jefe jornada jornadas
    joven jovenes jubilacion jubilarse juego jueves juez jugador jugar julio junio junta justo juventud juzgado
    laborables laboral lado ladron lago lana lanzar lapiz largo lata lateral lavadora lavar lazo leche lecho lector
    lectura leer legal legumbre lejos lengua lenguaje lento letra levantar ley leyes libertad libre libro ligero
    limite limites limon limpiar limpieza linea lineas liquido lista listo literatura llamada llamar llano llanta
    llave llaves llegada llegado llegar lleno llevado llevar llorar llover lluvia local loco logico lograr lucha
    luchar lugar luna lunes luz maceta madera madre maduro maestro maiz mal maleta maletin malo manana mando manejar
    mantener mantenimiento mapa maquina maquinaria mar maravilla marca marcar marcha marchar marido martes martillo
    marzo masa matar materia material matricula matrimonio maximo mayo mayor mayoria mecanico medicina medicion medico
    medida medio medir mejor mejorar memoria menor menos mensaje mensual mente menudo mercado mesa mesas meses metal
    meter metodo metro mezcla miedo miel miembro miercoles mil milagro militar mina minimo ministro minuto mirada
    mirar mision misterio mitad mochila modelo moderno modo molestia molino momento moneda montana montar moral morir
    mostrar motivo motor mover movil movimiento mucha mucho muchos mudanza muebles muela muerte muerto muestra mujer
    multa multas mundo municipio muro musculo museo musica nacer nacimiento nacion nacional nadie naranja nariz
    natural naturaleza nave necesario necesidad negar negocio negro nervio nieve ninguna nino ninos nivel noche
    nombrar nombre nomina nominas norma normal normas norte notar notaria noticia novela noviembre nube nucleo nudo
    nueva nuevo nuez numero nunca objetivo objeto obligacion obligar obligatorio obra obras observar obtener ocasion
    oceano octubre ocupado ocupar ocurrir odio oeste oferta oficial oficina oficio ofrecer oido ojo ola olor olvidar
    opcion opinion oponer orden ordenador ordenar oreja organizacion organizar organo orgullo oriente origen orilla
    oro oscuro otono oveja paciente padre padron pagar pagina paginas pago pagos pais paisaje paises pajaro palabra
    palabras palacio pan pantalla panuelo papel papelera papeles paquete parado parar parecer pared pareja pariente
    parque parte participar particular partido pasado pasar pasear pasillo paso pasta patio patria pausa paz pecho
    pedazo pedido pedidos pedir pegar pelicula peligro pelo pelota pensamiento pensar pension peor pequeno pera perder
    perdida periodico periodo permiso permisos perro persona personal personas pesado pesar pescado peso peticion pez
    piano pie piedra piel pierna pieza pintar pintura piso pistas placa planeta planta plantilla plata plato plaza
    plazo plazos pluma pluriempleo poblacion pobre poco poema poesia policia politica politico poliza pollo polvo
    poner popular portatil posibilidad posible posicion postura pozo practica precio precios preciso preferir pregunta
    preguntar preguntas prensa preocupar preparar presencia presentar presidente presion prestamo prestar presupuesto
    pretender prevencion primavera primer primero primo principal principe principio prisa privado probar problema
    procedimiento procesar proceso produccion producir producto profesion profesor profundo programa progreso
    prohibido prohibir promedio promesa pronto propietario propio proponer proporcionar proposito propuesta prorroga
    prorrogar proteccion proteger proveedor proximo proyecto prueba publico pueblo puente puerta puesto pulmon punto
    puntos puro quedar queja quejas quemar quimica quince quitar quizas rabia raiz rama rapido raro raton rayo raza
    razon realidad realizar rebaja rebano recargar recargo receta rechazar recibir recibo recien reciente reclamacion
    reclamar recoger recogida recomendar reconocer recordar recorrer recorrido recurso recursos red reducir reembolso
    referencia referir reflejo reforma refugio regalo regimen region regla reglamento reglas regresar regular reina
    reino reir relacion relato religion rellenar reloj renovacion renovar renta reparacion reparar reparto repetir
    reposo representar republica requisito requisitos reserva reservar resistir resolver respeto respirar responder
    responsable respuesta resto resultado resultar retencion retirar retraso retrato reunion reunir reves revision
    revista revolucion rey rico riesgo rio riqueza robo rodear rodilla rojo romper ropa roto rueda ruido ruina rumbo
    ruta sabado saber sabio sacar saco sacudir sala salario salarios salida salir salon salto salud salvaje salvar
    sancion sangre sanidad sano santo satelite seco secreto sector seda sede seguimiento seguir segundo seguridad
    seguro seguros seis seleccion sellar sello sellos selva semana semejante semilla senal sencillo senor sentar
    sentido sentimiento sentir separar septiembre serie serio serpiente servicio servicios servir siempre siglo
    significado significar signo siguiente silencio silla simple sindicato sintoma sistema sitio situacion situar
    soberano sobre social sociedad socio socios sol soldado soledad soler solicitar solicitud solo soltero solucion
    sombra sombrero sonar sonido sonreir sopa soportar sorpresa sostener sostenible suave subir subvencion suceder
    suceso sucio sucursal sudor sueldo sueldos suelo suelto sueno suerte suficiente sufrir sugerir suma superar
    superficie suponer surgir suspender sustancia sustitucion tabaco tabla taller talleres tamano tambien tanque tapar
    tardar tarde tarea tareas tarifa tarjeta tarjetas tasa tasas taza teatro techo techos tecla tecnica tecnico
    tecnologia tela telefono teletrabajo televisor tema temer temor temperatura templo temporada temprano tendencia
    tension teoria tercero terminado terminar terreno territorio tesoro texto tia tiempo tienda tierra tijera tinta
    tio tipo tirar titulo tocar tomar tonto torre trabajado trabajador trabajadores trabajar trabajo traer traje
    tramite tramites tranquilo transformar transporte tras traslado tratar trato traves trece treinta tren tres
    tribunal trigo trimestre triste triunfo tropa trozo tubo tumba turno turnos ultimo unico unidad unidades unir
    universidad universo urbano urgencia usar uso usuario util utilizar vaca vacaciones vacio vacuna vale valiente
    valioso valle valor valorar vapor variar variedad varios vaso veces vecina vecino vehiculo vehiculos vela
    velocidad vena vencer vencido vencimiento vender veneno venir venta ventaja ventana ventas ver verano verdad
    verdadero verde verduras verso verter vestido vestuario vez viaje viajes victima victoria vida viejo viento
    viernes vigilar vino violencia virtud visita visitar visto viudedad vivienda vivir vivo volar volumen voluntad
    volver votar voz vuelo vuelta yegua zapato zapatos zona zonas
    """.split()  # noqa: SIM905  # words, to be read and added to
)
